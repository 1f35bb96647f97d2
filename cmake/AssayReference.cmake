# assay::reference: Eigen, double precision, every op and the whole training step written out.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
file(GLOB_RECURSE reference_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/reference/*.cpp)
add_library(assay_reference STATIC ${reference_sources})
add_library(assay::reference ALIAS assay_reference)
target_link_libraries(assay_reference PUBLIC assay_spec Eigen3::Eigen PRIVATE assay_own_code)
# The order of the loops is the definition of the reference's sums: no contraction, no reassociation.
target_compile_options(assay_reference PRIVATE -ffp-contract=off)
target_precompile_headers(assay_reference PRIVATE <Eigen/Core>)
assay_batch(assay_reference)
